;; Gives the host room where its own data are.
;; kind: health
;; answers
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
