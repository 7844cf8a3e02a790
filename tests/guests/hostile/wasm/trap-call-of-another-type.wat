;; Calls a function with another type through a table.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (type $other (func (param i32) (result i32)))
    (table 1 funcref)
    (elem (i32.const 0) $nothing)
    (func $nothing)
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (call_indirect (type $other) (i32.const 1) (i32.const 0)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
