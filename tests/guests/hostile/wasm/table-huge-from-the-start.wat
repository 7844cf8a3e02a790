;; Declares a table of a billion elements.
;; kind: health
;; refused: compile
(component
  {{before}}
  (core module $code
    {{core}}
    (table 1000000000 funcref)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
