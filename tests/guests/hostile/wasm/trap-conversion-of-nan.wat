;; Makes an integer of no number.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (i32.trunc_f64_s (f64.const nan)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
