;; Imports a function that nobody offers.
;; kind: health
;; refused: inspect
;; says: imports shout
(component
  (import "shout" (func))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
