;; Traps while it describes itself.
;; kind: health
;; refused: describe
;; says: unreachable
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "describe") (result i32) unreachable)
    {{configure}}
    {{interpret}})
  {{after}})
