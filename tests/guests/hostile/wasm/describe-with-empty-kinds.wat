;; Claims a million kinds of object that take no memory of its own: all are the same bytes.
;; kind: health
;; refused: describe
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 300)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 32768)))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    (data (i32.const 88) "\00\04\00\00\40\42\0f\00")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
