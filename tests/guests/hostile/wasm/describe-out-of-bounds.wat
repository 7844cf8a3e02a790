;; Puts its description outside of its memory.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "describe") (result i32) (i32.const -4))
    {{configure}}
    {{interpret}})
  {{after}})
