;; Gives the host room at the end of its memory.
;; kind: health
;; refused: configure
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65535)))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
