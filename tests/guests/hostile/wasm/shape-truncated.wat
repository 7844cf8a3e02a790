;; Is the first half of a plugin.
;; kind: health
;; cut: 50%
;; refused: compile
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
