;; Exports the interface of its kind without the function in it.
;; kind: health
;; refused: inspect
;; says: interpret
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
  (instance $health)
  (export "bulkhead:policy/health@0.1.0" (instance $health)))
