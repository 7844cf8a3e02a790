;; Has data behind the end of its memory.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 65535) "too long")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
