;; Declares a memory with 64-bit addresses, of all of them.
;; kind: health
;; refused: compile
(component
  (core module $huge (memory i64 0x1000000000000))
  (core instance (instantiate $huge))
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
