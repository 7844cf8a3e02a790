;; Logs while it is configured, without end.
;; kind: health
;; budget: {"steps": 1000000}
;; refused: configure
;; says: used up its
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    (func (export "configure") (param i32 i32) (result i32)
      (loop
        (call $write (i32.const 2) (i32.const 128) (i32.const 4))
        (br 0))
      (i32.const 256))
    {{interpret}})
  {{after}})
