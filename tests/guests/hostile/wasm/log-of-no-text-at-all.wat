;; Logs empty lines and control characters without end.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 600) "\00\07\1b\0a\7f")
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (call $write (i32.const 0) (i32.const 600) (i32.const 0))
        (call $write (i32.const 2) (i32.const 600) (i32.const 5))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
