;; Claims half a billion annotations.
;; kind: health
;; refused: describe
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 116) "\00\04\00\00\ff\ff\ff\1f")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
