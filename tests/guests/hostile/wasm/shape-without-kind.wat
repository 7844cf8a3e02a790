;; Is a plugin that answers nothing.
;; kind: health
;; refused: inspect
;; says: exports no kind of policy
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{instance}}
  {{types}}
  {{plugin}})
