;; Takes for ever when the host asks for room.
;; kind: health
;; refused: configure
;; says: used up its
(component
  {{imports}}
  (core module $heap
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (loop (br 0)) unreachable))
  (core instance $heap (instantiate $heap))
  {{host}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
