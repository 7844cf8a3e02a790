;; Wants to make requests.
;; kind: health
;; refused: inspect
;; says: imports wasi:http/outgoing-handler@0.2.0
(component
  (import "wasi:http/outgoing-handler@0.2.0" (instance))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
