;; Grows its memory while it describes itself, and gives up.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (func (export "describe") (result i32)
      (loop
        (br_if 0 (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0))))
      unreachable)
    {{configure}}
    {{interpret}})
  {{after}})
