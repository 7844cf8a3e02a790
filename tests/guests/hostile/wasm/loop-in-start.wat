;; Never finishes being instantiated.
;; kind: health
;; refused: describe
;; says: used up its
(component
  {{before}}
  (core module $code
    {{core}}
    (func $start (loop (br 0)))
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
