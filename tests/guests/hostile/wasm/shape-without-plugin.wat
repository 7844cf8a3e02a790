;; Does not say who it is.
;; kind: health
;; refused: inspect
;; says: does not export bulkhead:policy/plugin@0.1.0
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{instance}}
  {{types}}
  {{health}})
