;; Behaves: what the other guests here are changed from, and the neighbour whose verdict must not change.
;; kind: health
;; answers
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
