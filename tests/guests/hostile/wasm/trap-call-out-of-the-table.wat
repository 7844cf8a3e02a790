;; Calls a function behind the end of its table.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (type $nothing (func))
    (table 1 funcref)
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (call_indirect (type $nothing) (i32.const -1))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
