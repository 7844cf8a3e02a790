;; Calls through a table without end.
;; kind: health
;; budget: {"steps": 1000000}
;; expect: out-of-fuel
(component
  {{before}}
  (core module $code
    {{core}}
    (type $nothing (func))
    (table 1 funcref)
    (elem (i32.const 0) $nothing)
    (func $nothing)
    {{describe}}
    {{configure}}
    (func (export "interpret") (param $observed i32) (result i32)
      (loop
        (call_indirect (type $nothing) (i32.const 0))
        (br 0))
      (call $drop (local.get $observed))
      (i32.const 512)))
  {{after}})
