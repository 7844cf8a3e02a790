;; An error that there is not.
;; kind: health
;; expect: bad-reply
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (i32.store8 (i32.const 512) (i32.const 1))
      (i32.store8 (i32.const 516) (i32.const 200))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
