;; Exports a function of another type under the name of the question.
;; kind: health
;; refused: inspect
;; says: does not have the type of the contract
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{instance}}
  {{types}}
  {{plugin}}
  (instance $health (export "interpret" (func $describe)))
  (export "bulkhead:policy/health@0.1.0" (instance $health)))
