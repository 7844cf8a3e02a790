;; Answers its configuration outside of its memory.
;; kind: health
;; refused: configure
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    (func (export "configure") (param i32 i32) (result i32) (i32.const -1))
    {{interpret}})
  {{after}})
