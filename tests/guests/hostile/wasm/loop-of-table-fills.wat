;; Fills a large table again and again.
;; kind: health
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    (table $t 90000 funcref)
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (table.fill $t (i32.const 0) (ref.null func) (i32.const 90000))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
