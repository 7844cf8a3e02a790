;; Divides the least integer by minus one.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (i64.div_s (i64.const 0x8000000000000000) (i64.const -1)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
