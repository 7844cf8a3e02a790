;; Fills its memory in its start function without end.
;; kind: health
;; refused: describe
;; says: used up its
(component
  {{before}}
  (core module $code
    {{core}}
    (func $start (loop (memory.fill (i32.const 40000) (i32.const 1) (i32.const 20000)) (br 0)))
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
