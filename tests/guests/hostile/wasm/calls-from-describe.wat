;; Logs while it describes itself, without end.
;; kind: health
;; budget: {"steps": 1000000}
;; refused: describe
;; says: used up its
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "describe") (result i32)
      (loop
        (call $write (i32.const 1) (i32.const 128) (i32.const 4))
        (br 0))
      (i32.const 64))
    {{configure}}
    {{interpret}})
  {{after}})
