;; Asks with pointers of 60,000 bytes.
;; kind: health
;; budget: {"steps": 50000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store8 (i32.const 1024) (i32.const 47))
      (loop
        (call $get-string (local.get $observed) (i32.const 1024) (i32.const 60000) (i32.const 700))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
