;; Imports an interface of a newer contract.
;; kind: health
;; refused: inspect
;; says: this host supports bulkhead:policy@0.1.0
(component
  (import "bulkhead:policy/clusters@1.0.0" (instance))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
