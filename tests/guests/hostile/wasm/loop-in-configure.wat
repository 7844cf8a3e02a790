;; Never has enough of its configuration.
;; kind: health
;; refused: configure
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    (func (export "configure") (param i32 i32) (result i32) (loop (br 0)) unreachable)
    {{interpret}})
  {{after}})
