;; Calls itself indirectly, which no compiler can see.
;; kind: health
;; expect: trap
(component
  {{before}}
  (core module $code
    {{core}}
    (type $next (func (param i32) (result i32)))
    (table 1 funcref)
    (elem (i32.const 0) $deeper)
    (func $deeper (param i32) (result i32)
      (i32.add (call_indirect (type $next) (local.get 0) (i32.const 0)) (i32.const 1)))
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (drop (call $deeper (i32.const 0)))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
