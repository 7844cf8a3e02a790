;; Writes lines as long as it can.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (call $write (i32.const 2) (i32.const 128) (i32.const 4))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
