;; Wants WASI 0.3.
;; kind: health
;; refused: inspect
;; says: imports wasi:cli/environment@0.3.0
(component
  (import "wasi:cli/environment@0.3.0" (instance))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
