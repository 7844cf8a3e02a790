;; Divides without end.
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
        (drop (i64.rem_u (i64.const -1) (i64.const 3)))
        (drop (f64.sqrt (f64.const nan)))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
