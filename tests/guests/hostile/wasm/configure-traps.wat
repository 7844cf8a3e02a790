;; Traps while it is configured.
;; kind: health
;; refused: configure
;; says: unreachable
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    (func (export "configure") (param i32 i32) (result i32) unreachable)
    {{interpret}})
  {{after}})
