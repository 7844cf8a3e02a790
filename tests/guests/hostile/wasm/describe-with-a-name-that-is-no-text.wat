;; Has a name that is not UTF-8.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 128) "\ff\fe\fd\fc")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
