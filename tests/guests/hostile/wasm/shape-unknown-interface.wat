;; Imports an interface that the contract does not have.
;; kind: health
;; refused: inspect
;; says: imports bulkhead:policy/secrets@0.1.0
(component
  (import "bulkhead:policy/secrets@0.1.0" (instance))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
