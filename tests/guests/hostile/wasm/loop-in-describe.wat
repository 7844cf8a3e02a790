;; Never says who it is.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "describe") (result i32) (loop (br 0)) unreachable)
    {{configure}}
    {{interpret}})
  {{after}})
