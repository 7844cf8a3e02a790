;; Recurses while it describes itself.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (func $describe (export "describe") (result i32) (i32.add (call $describe) (i32.const 1)))
    {{configure}}
    {{interpret}})
  {{after}})
