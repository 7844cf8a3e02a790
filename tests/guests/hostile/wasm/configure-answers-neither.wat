;; Answers its configuration with neither success nor an error.
;; kind: health
;; refused: configure
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    (func (export "configure") (param i32 i32) (result i32)
      (i32.store8 (i32.const 256) (i32.const 7))
      (i32.const 256))
    {{interpret}})
  {{after}})
