;; Makes an integer of infinity.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (i64.trunc_f64_u (f64.const inf)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
