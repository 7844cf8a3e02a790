;; Grows a table until it gets no more.
;; kind: health
;; expect: memory
(component
  {{before}}
  (core module $code
    {{core}}
    (table $t 1 funcref)
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (br_if 0 (i32.ge_s (table.grow $t (ref.null func) (i32.const 1000)) (i32.const 0))))
      unreachable
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
