;; Puts its description at an odd address.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "describe") (result i32) (i32.const 65))
    {{configure}}
    {{interpret}})
  {{after}})
