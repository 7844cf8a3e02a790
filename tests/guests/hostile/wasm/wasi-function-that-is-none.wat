;; Wants a function that WASI does not have.
;; kind: health
;; refused: inspect
;; says: set-environment
(component
  (import "wasi:cli/environment@0.2.0" (instance (export "set-environment" (func))))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
