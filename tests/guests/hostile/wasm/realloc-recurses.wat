;; Recurses when the host asks for room.
;; kind: health
;; refused: configure
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (call 0 (local.get 0) (local.get 1) (local.get 2) (local.get 3))))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
