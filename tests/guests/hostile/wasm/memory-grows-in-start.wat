;; Takes all memory before anybody asks it anything.
;; kind: health
;; refused: describe
;; says: bytes of memory
(component
  {{before}}
  (core module $code
    {{core}}
    (func $start
      (loop (br_if 0 (i32.ge_s (memory.grow (i32.const 1)) (i32.const 0))))
      unreachable)
    (start $start)
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
