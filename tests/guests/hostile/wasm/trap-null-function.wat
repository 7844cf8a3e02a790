;; Calls a function that is not in its table.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (table 1 funcref)
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call_indirect (i32.const 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
