;; Has no version.
;; kind: health
;; refused: describe
;; says: version
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 76) "\00")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
