;; Divides by zero.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (i32.div_s (i32.const 1) (i32.const 0)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
