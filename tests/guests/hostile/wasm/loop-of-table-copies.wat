;; Copies a large table onto itself again and again.
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
        (table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 89999))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
