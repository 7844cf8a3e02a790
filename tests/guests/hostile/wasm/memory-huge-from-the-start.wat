;; Declares 4 GiB.
;; kind: health
;; refused: describe
;; says: bytes of memory
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 65535)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 32768)))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
